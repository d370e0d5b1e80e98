const COMMON = new Set(
  `a about all an and any are as at be but by can contain contains could d did do does each for from give had
  has have help her his how i if in into is it its just know like ll m may me mention mentions my need needs
  now of on one or our out please provide re s so some t thank that the their them then there these they this
  to up use using ve want was we were what when where which who will with would you your`.split(/\s+/),
);
const ENDING = /^(.{3,}?)(?:ations?|ating|ate[sd]?|ators?|ings?|ions?|ers?|ors?|ed|es|s|e)$/;

/** The words of a sentence or an identifier, in order, with crude stems; `common` ones carry no topic. */
export function readWords(text: string) {
  return [...text.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}+/gu)].map((match) => {
    const [at, word] = [match.index, match[0].toLowerCase()];
    const stem = word.replace(/([^aeiou])(?:ies|y)$/, '$1i').replace(ENDING, '$1');
    return { stem, common: COMMON.has(word), at, end: at + match[0].length };
  });
}

/** The distinct stems of a text that carry its topic. */
export function topicOf(text: string): Set<string> {
  return new Set(readWords(text).flatMap((word) => (word.common ? [] : [word.stem])));
}
