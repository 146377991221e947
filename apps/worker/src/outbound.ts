/** Builds the resolver, the senders and the probes of a worker, and the detection of outages, which observes them. */
import { createRepeating, USER_AGENT } from '@posthorn/runtime';
import { createOneOffSender, createProbe, createResolver, createSender } from '@posthorn/sender';
import { listSubscriptions, loadReachedSites, type Store } from '@posthorn/store';
import { NOTICE_NETWORKS, type WorkerSettings } from './config.ts';
import type { AttemptCounts } from './counts.ts';
import { createOutageAnnouncer, type OutageAnnouncerContext } from './outage/announce-outage.ts';
import { Outages } from './outage/network-outage.ts';
import { createReachedSites } from './outage/reached-sites.ts';

interface OutboundContext extends OutageAnnouncerContext {
  settings: WorkerSettings;
  counts: Pick<AttemptCounts, 'inFlight'>;
}

/** Detection within 10 seconds: an attempt that gets nowhere fails after 8 seconds at most, then its probes. */
const PROBE_TIMEOUT_MS = 1_500;
const OUTAGE_CHECK_EVERY_MS = 1_000;
/** Subscriptions that are probed besides the remembered sites, newest first. */
const MAX_MORE_URLS = 20;

export function createOutbound(context: OutboundContext) {
  const { settings, store, clock, logger, giveUp } = context;
  const resolve = createResolver({
    servers: settings.DNS_SERVERS,
    attemptTimeoutMs: settings.ATTEMPT_TIMEOUT,
    onResolved: (hostname) => outages.resolved(hostname),
  });
  const sending = { timeoutMs: settings.ATTEMPT_TIMEOUT, userAgent: USER_AGENT, resolve, signal: giveUp };
  const reaching = {
    resolve,
    allowedNetworks: settings.ALLOWED_PRIVATE_NETWORKS,
    onConnected: (origin: string, ip: string) => outages.connected(origin, ip),
  };
  const reachedSites = createReachedSites();
  const outages = new Outages({
    ...createOutageAnnouncer(context),
    sites: reachedSites,
    probe: createProbe({ ...reaching, timeoutMs: PROBE_TIMEOUT_MS }),
    moreUrls: () => newestUrls(store),
    inFlight: () => context.counts.inFlight,
    now: () => clock.now(),
    elapsedMs: () => performance.now(),
  });
  const outageChecks = createRepeating({
    name: 'outage checks',
    everyMs: OUTAGE_CHECK_EVERY_MS,
    // The sites that other processes have reached reveal an outage that began before this process started.
    onStart: async () => reachedSites.load(await loadReachedSites(store)),
    run: () => outages.check(),
    logger,
  });
  const sender = createSender({ ...sending, ...reaching });
  const { NOTICE_URL: url, NOTICE_SECRET: secret } = settings;
  const noticeSender = createOneOffSender({ ...sending, allowedNetworks: NOTICE_NETWORKS });
  return {
    sender,
    /** Where notices are posted, if anywhere. */
    noticesTo: url === undefined || secret === undefined ? undefined : { url, secret, sender: noticeSender },
    reachedSites,
    outages,
    outageChecks,
    close() {
      sender.close();
      noticeSender.close();
    },
  };
}

async function newestUrls(store: Store): Promise<string[]> {
  const { items } = await listSubscriptions(store, { status: 'active' }, { limit: MAX_MORE_URLS });
  return items.map(({ url }) => url);
}
