/** Ends a run with one line of counts: `N passed, N failed`, and `, N skipped` if tests did not run. */
import type { AggregatedResult, Reporter } from '@jest/reporters';

export default class ClosingLine implements Pick<Reporter, 'onRunComplete'> {
  onRunComplete(_contexts: unknown, results: AggregatedResult): void {
    // A file that could not be loaded counts as a failed test.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    const counts = [`${results.numPassedTests} passed`, `${failed} failed`];
    if (skipped > 0) counts.push(`${skipped} skipped`);
    process.stdout.write(`\n${counts.join(', ')}\n`);
  }
}
