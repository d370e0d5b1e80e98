/**
 * Formats that this room writes, in the width in which class-validator accepts them, for the checker to use
 * instead of narrower ones. `email`: RFC 6531 allows characters outside ASCII and RFC 5321 quoted names;
 * ajv-formats refuses both.
 */
export const TEXT_FORMATS: Readonly<Record<string, RegExp>> = {
  // Each place can be read in one way only, so that it takes one look at each character, whatever the text.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  email: /^(?:"[\s\S]*"|[^\x00-\x20"@]+)@[^\x00-\x20@][^\x00-\x20@.]*\.[^\x00-\x20@]+$/,
};
