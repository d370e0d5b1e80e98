import { expect, test } from '@jest/globals';
import { packageSources } from './source-tree.js';

/** Words that are not used in the source, in identifiers and in comments, and what is said instead. */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/\bclimb\w*/i, 'make a call, step'],
  [/\bgoRound\b/, 'step, iteration'],
  [/\bdeaf\b/i, 'silent, without listeners'],
  [/\bTurn(Taker|Slot)\b/, 'turn'],
  [/\b[Jj]udg(e|es|ed|ing)\b|Judge\b/, 'check, validate'],
  [/\bmend(s|ed|ing)?\b|[mM]ends?[A-Z]/, 'repair, fix'],
  [/\brevive[A-Z]|\bReviver?\b/, 'hydrate'],
  [/\bFITS\b|\bMakeJudge\b/, 'ALWAYS_VALID, ValidatorFactory'],
  [/\bwordOn\w*|\bkeepYes\b|\bneedsYes\b/, 'decisionFor, rememberApproval, needsApproval'],
  [/\btakeUp\b|\bLeftCall\b|\bhinderedEnd\b/, 'names of the pipeline of a call'],
  [/\bHeldConversation\b|\buntold\w*Events\b/, 'ConversationLease, missed events'],
  [/how-manieth/, 'attempt'],
];

test('words that were replaced do not come back', () => {
  const found = packageSources()
    // Its stop words are English.
    .filter(({ path }) => path !== 'src/tools/search/tool-index.ts')
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        REPLACED.filter(([word]) => word.test(line)).map(
          ([word, instead]) => `${path}:${index + 1} ${word}: ${instead}`,
        ),
      ),
    );
  expect(found).toEqual([]);
});
