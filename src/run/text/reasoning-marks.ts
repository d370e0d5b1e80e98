/** The marks around a model's reasoning. Text between them is never a call. */
interface ReasoningMark {
  readonly opens: readonly string[];
  readonly closes: readonly string[];
  /** Plain words, which may occur in any text: they count only at the beginning of a message. */
  readonly isFirst?: boolean;
  /** The closing marks also end other parts: they count only after an opening mark. */
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
  // Hunyuan 4 adds a suffix to all of its tags.
  'think:opensource',
];

/** All marks; families that are not named use one of the tags. */
export const REASONING_MARKS: readonly ReasoningMark[] = [
  ...TAGS.flatMap((tag) => {
    // Small models vary the case.
    const spellings = [tag, `${tag.slice(0, 1).toUpperCase()}${tag.slice(1)}`, tag.toUpperCase()];
    return spellings.map((spelling) => ({ opens: [`<${spelling}>`], closes: [`</${spelling}>`] }));
  }),
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
  // gpt-oss. A message to a function in its analysis channel is a call: it has `to=` before `<|message|>`.
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

/** Opening marks with their closing marks. */
export const REASONING_OPENERS: ReadonlyMap<string, ReasoningMark> = new Map(
  REASONING_MARKS.flatMap((mark) => mark.opens.map((literal) => [literal, mark])),
);

/** Closing marks that are sufficient alone to end reasoning: its opening mark was part of the prompt. */
export const REASONING_CLOSERS: ReadonlySet<string> = new Set(
  REASONING_MARKS.filter(({ needsOpener }) => !needsOpener).flatMap(({ closes }) => closes),
);
