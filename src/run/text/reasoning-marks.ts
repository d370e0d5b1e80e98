/** What models put around what they think aloud. Nothing that stands between is ever a call. */
export interface ReasoningMark {
  readonly opens: readonly string[];
  readonly closes: readonly string[];
  /** Plain words, which any text may hold: they count only as the beginning of a message. */
  readonly isFirst?: boolean;
  /** The closing marks also end other things: without an opening mark before them they mean nothing. */
  readonly needsOpener?: boolean;
}

const TAGS = [
  'think',
  'thinking',
  'thought',
  'thoughts',
  'reason',
  'reasoning',
  'reflection',
  'scratchpad',
  'scratch_pad',
  'seed:think',
  'mm:think',
  'longcat_think',
  // Hunyuan 4 writes a suffix into all of its tags.
  'think:opensource',
];

/** Small models are not certain of capitals. */
function spellings(tag: string): readonly string[] {
  return [tag, `${tag.slice(0, 1).toUpperCase()}${tag.slice(1)}`, tag.toUpperCase()];
}

/** All of them; a family that is not named uses one of the tags. */
export const REASONING_MARKS: readonly ReasoningMark[] = [
  ...TAGS.flatMap(spellings).map((tag) => ({ opens: [`<${tag}>`], closes: [`</${tag}>`] })),
  // Magistral.
  { opens: ['[THINK]'], closes: ['[/THINK]'] },
  // Kimi VL, Kimi K3.
  { opens: ['◁think▷'], closes: ['◁/think▷'] },
  { opens: ['<|open|>think<|sep|>'], closes: ['<|close|>think<|sep|>'] },
  // Command A, Apertus, Solar, OpenThinker, openPangu.
  { opens: ['<|START_THINKING|>'], closes: ['<|END_THINKING|>'] },
  { opens: ['<|inner_prefix|>'], closes: ['<|inner_suffix|>'] },
  { opens: ['<|think:start|>'], closes: ['<|think:end|>'] },
  { opens: ['<|begin_of_thought|>'], closes: ['<|end_of_thought|>'] },
  { opens: ['[unused16]'], closes: ['[unused17]'] },
  // Gemma 4.
  { opens: ['<|channel>'], closes: ['<channel|>'] },
  // gpt-oss. What is said in its analysis channel to a function is a call: that has `to=` before `<|message|>`.
  {
    opens: ['<|channel|>analysis<|message|>'],
    closes: ['<|end|>', '<|return|>', '<|call|>', '<|start|>'],
    needsOpener: true,
  },
  { opens: [], closes: ['<|end|><|start|>assistant'] },
  // Granite 3.2.
  {
    opens: ['Here is my thought process:', "Here's my thought process:"],
    closes: ['Here is my response:', "Here's my response:"],
    isFirst: true,
    needsOpener: true,
  },
];

/** Opening marks, each with what closes it. */
export const REASONING_OPENERS: ReadonlyMap<string, ReasoningMark> = new Map(
  REASONING_MARKS.flatMap((mark) => mark.opens.map((literal) => [literal, mark])),
);

/** Closing marks that tell by themselves that reasoning came before: its opening mark stood in the prompt. */
export const REASONING_CLOSERS: ReadonlySet<string> = new Set(
  REASONING_MARKS.filter(({ needsOpener }) => !needsOpener).flatMap(({ closes }) => closes),
);
