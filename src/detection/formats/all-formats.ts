import { apertusTools } from './apertus-tools.js';
import { argKeyTags } from './arg-key-tags.js';
import { bareJson } from './bare-json.js';
import { deepseekTokens } from './deepseek-tokens.js';
import { fencedJson } from './fenced-json.js';
import { functionTag } from './function-tag.js';
import { gemmaCalls } from './gemma-calls.js';
import { harmonyChannel } from './harmony-channel.js';
import { invokeTags } from './invoke-tags.js';
import { kimiTokens } from './kimi-tokens.js';
import { mistralMarks } from './mistral-marks.js';
import { pythonicCalls } from './pythonic-calls.js';
import { taggedJson } from './tagged-json.js';
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
