import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

/** Any Unicode character, like `unit: 'binary'`, for which fast-check would first build a map of all of them. */
export const anyCharacter = fc
  .nat({ max: LAST - SURROGATES.count })
  .map((code) => String.fromCodePoint(code < SURROGATES.first ? code : code + SURROGATES.count));
