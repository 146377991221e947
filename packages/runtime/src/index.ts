/** What every process needs: settings, logs, metrics, tracing, services that start and stop. */
export { boundedLog } from './bounded-log.ts';
export { type Clock, systemClock } from './clock.ts';
export { frequentLine, type LineValue } from './frequent-line.ts';
export { createLogger, type Logger } from './logger.ts';
export { createMetrics, registerInstallation } from './metrics.ts';
export { createRepeating } from './repeating.ts';
export { createSeldom } from './seldom.ts';
export { sendingSettings, warnOfPrivateNetworks } from './sending-settings.ts';
export { type App, exitAtOnce, onlyAtStart, runApp, type Service, stopServices } from './service.ts';
export {
  documentedSettings,
  durationListMs,
  durationMs,
  loadSettings,
  mayBeInFile,
  operatorTokens,
  parsedBy,
  publisherKeys,
  SETTING_GROUPS,
  type SettingDoc,
  setting,
  warnOfShortKeys,
  wholeNumber,
} from './settings.ts';
export { shareResult } from './shared-result.ts';
export { type SharedSettings, settingsAgree, sharedSettings } from './shared-settings.ts';
export { stopWithoutRedis } from './stop-without-redis.ts';
export { createTracing, type Span, type SpanShape, type Tracing } from './tracing.ts';
export { tracingSettings, withoutUnusedTracing } from './tracing-settings.ts';
export { USER_AGENT, version } from './version.ts';
