/** Starts whole apps and browsers first, since a file that takes a minute would otherwise run alone at the end. */
import sequencer from '@jest/test-sequencer';

/** The chart is late because helm may be being built, with what CPU the others leave. */
const KINDS = ['browser', 'e2e', 'int', 'chart', 'unit'];

// Its types are those of a CommonJS module; its file for `import` exports the class itself.
const TestSequencer = sequencer as unknown as typeof sequencer.default;

export default class SlowKindsFirst extends TestSequencer {
  override async sort(...[tests]: Parameters<typeof TestSequencer.prototype.sort>) {
    const kindOf = ({ context }: (typeof tests)[number]) => KINDS.indexOf(context.config.displayName?.name ?? '');
    const sorted = await super.sort(tests);
    return sorted.sort((a, b) => kindOf(a) - kindOf(b));
  }
}
