// Words that carry no topic.
const COMMON = new Set(
  `a about after all also am an and any are as at be been but by can contain containing contains could d did do does
  each for from give had has have hello help her hey hi his how i if in into is it its just know let like ll m many
  may me mention mentions much my need needs now of on one or our out please provide re s so some t than thank that
  the their them then there these they this those to up us use using ve want was we were what when where which who
  will with would you your`.split(/\s+/),
);

/** The words of a sentence or of an identifier (`listOpenInvoices`, `list_open.invoices`), in order. */
export function readWords(text: string) {
  return [...text.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}+/gu)].map(
    ({ 0: word, index: at }) => {
      const singular = word.toLowerCase().replace(/([^aeiou])(?:ies|y)$/, '$1i');
      // Crude stems will do: both sides of every comparison are stemmed alike.
      const ending = /^(.{3,}?)(?:ations?|ating|ate[sd]?|ators?|ings?|ions?|ers?|ors?|ed|es|s|e)$/;
      const common = COMMON.has(word.toLowerCase());
      return { stem: singular.replace(ending, '$1'), common, at, end: at + word.length };
    },
  );
}

/** The distinct stems of a text that carry its topic. */
export function topicOf(text: string): Set<string> {
  return new Set(readWords(text).flatMap((word) => (word.common ? [] : [word.stem])));
}
