import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

/** Any character of Unicode: as `unit: 'binary'`, for which fast-check makes a map of the million that there are. */
export const anyCharacter = fc
  .nat({ max: LAST - SURROGATES.count })
  .map((code) => String.fromCodePoint(code < SURROGATES.first ? code : code + SURROGATES.count));
