import {
  apertusTools,
  bareJson,
  deepseekTokens,
  fencedJson,
  harmonyChannel,
  kimiTokens,
  mistralMarks,
  taggedJson,
} from './json-formats.js';
import { gemmaCalls, pythonicCalls } from './literal-calls.js';
import { argKeyTags, functionTag, invokeTags } from './tag-formats.js';
import type { TextCallFormat } from './text-call-format.js';

/** Every format, in the order in which those with the same opener are tried. */
export const ALL_FORMATS: readonly TextCallFormat[] = [
  taggedJson,
  functionTag,
  argKeyTags,
  invokeTags,
  gemmaCalls,
  apertusTools,
  mistralMarks,
  deepseekTokens,
  kimiTokens,
  harmonyChannel,
  fencedJson,
  pythonicCalls,
  bareJson,
];
