const COMMON =
  /^(?:a|about|after|all|also|am|an|and|any|are|as|at|be|been|but|by|can|contain|contains|could|did|do|does|each|for|from|give|had|has|have|hello|help|her|hey|hi|his|how|if|in|into|is|its?|just|know|let|like|many|may|me|mentions?|my|needs?|now|of|on|one|or|our|out|please|provide|so|some|than|thanks?|that|the|their|them|then|there|these|they|this|to|up|us|use|using|want|was|we|were|what|when|where|which|who|will|with|would|your?|d|ll|m|re|s|t|ve)$/i;
const ENDING = /^(.{3,}?)(?:ations?|ating|ate[sd]?|ators?|ings?|ions?|ers?|ors?|ed|es|s|e)$/;

/** The words of a sentence or an identifier, in order, with crude stems; `common` ones carry no topic. */
export function readWords(text: string) {
  return [...text.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}+/gu)].map(
    ({ 0: word, index: at }) => {
      const stem = word
        .toLowerCase()
        .replace(/([^aeiou])(?:ies|y)$/, '$1i')
        .replace(ENDING, '$1');
      return { stem, common: COMMON.test(word), at, end: at + word.length };
    },
  );
}

/** The distinct stems of a text that carry its topic. */
export function topicOf(text: string): Set<string> {
  return new Set(readWords(text).flatMap((word) => (word.common ? [] : [word.stem])));
}
