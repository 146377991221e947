/** Closes a run with one plain line of counts, whatever reads the output. */
import type { AggregatedResult, Reporter } from '@jest/reporters';

export default class ClosingLine implements Pick<Reporter, 'onRunComplete'> {
  onRunComplete(_contexts: unknown, results: AggregatedResult): void {
    const failedToRun = results.numRuntimeErrorTestSuites;
    process.stdout.write(`\n${results.numPassedTests} passed, ${results.numFailedTests + failedToRun} failed\n`);
  }
}
