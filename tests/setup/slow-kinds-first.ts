/**
 * Starts whole apps and browsers first, since a file that takes a minute would otherwise run alone at the end. These
 * two take turns: browsers need the processor, and many tests of whole apps wait.
 */
import sequencer from '@jest/test-sequencer';

/** The chart is late because helm may be being built, with what CPU the others leave. */
const TURNS = [['browser', 'e2e'], ['int'], ['chart'], ['unit']];

// Its types are those of a CommonJS module; its file for `import` exports the class itself.
const TestSequencer = sequencer as unknown as typeof sequencer.default;

export default class SlowKindsFirst extends TestSequencer {
  override async sort(...[tests]: Parameters<typeof TestSequencer.prototype.sort>) {
    const kindOf = ({ context }: (typeof tests)[number]) => context.config.displayName?.name ?? '';
    const ofKinds = Map.groupBy(await super.sort(tests), kindOf);
    return [...ofKinds]
      .flatMap(([kind, ofKind]) => {
        const turn = TURNS.findIndex((kinds) => kinds.includes(kind));
        // Spread evenly over the turn: the more of a kind, the closer together.
        return ofKind.map((test, i) => ({ test, turn, place: (i + 1) / ofKind.length }));
      })
      .sort((a, b) => a.turn - b.turn || a.place - b.place)
      .map(({ test }) => test);
  }
}
