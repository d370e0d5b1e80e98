/*
 * Replies of the Responses API for tests: the whole response, and the events of a stream that contains it.
 */

type Item = Readonly<Record<string, unknown>>;

/** A response with these items. */
export function responseOf(output: readonly Item[], more: Item = {}): Item {
  return {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    store: false,
    output,
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 16,
    },
    ...more,
  };
}

export function message(text: string, more: Item = {}): Item {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  return {
    id: `msg_${text.length}`,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content,
    ...more,
  };
}

export function reasoning(...summaries: readonly string[]): Item {
  return {
    id: 'rs_1',
    type: 'reasoning',
    summary: summaries.map((text) => ({ type: 'summary_text', text })),
    encrypted_content: 'gAAAAB+/=',
  };
}

export function functionCall(call_id: string, args: string, more: Item = {}): Item {
  return {
    id: `fc_${call_id}`,
    type: 'function_call',
    status: 'completed',
    call_id,
    name: 'look',
    arguments: args,
    ...more,
  };
}

export function customCall(call_id: string, input: string): Item {
  return { id: `ctc_${call_id}`, type: 'custom_tool_call', status: 'completed', call_id, name: 'sql', input };
}

/** How a stream splits texts: by a maximum length, or by a function. */
type Split = number | ((text: string) => readonly string[]);

/** The events of a stream that contains a response. */
export function eventsOf(response: Item, split: Split = 3): readonly Item[] {
  const items = response.output as readonly Item[];
  const bare = { ...response, output: [], status: 'in_progress', usage: null };
  const ending = { completed: 'completed', incomplete: 'incomplete', failed: 'failed' }[
    String(response.status)
  ];
  return [
    { type: 'response.created', response: bare },
    { type: 'response.in_progress', response: bare },
    ...items.flatMap((item, at) => itemEvents(item, at, split)),
    { type: `response.${ending}`, response },
  ];
}

function itemEvents(item: Item, output_index: number, split: Split): readonly Item[] {
  const at = { output_index, item_id: item.id };
  const added = { type: 'response.output_item.added', output_index, item: { ...item, ...emptied(item) } };
  return [added, ...deltas(item, at, split), { type: 'response.output_item.done', output_index, item }];
}

function emptied({ type }: Item): Item {
  if (type === 'function_call') return { arguments: '', status: 'in_progress' };
  if (type === 'custom_tool_call') return { input: '', status: 'in_progress' };
  if (type === 'reasoning') return { summary: [], encrypted_content: 'gAAAAB' };
  return type === 'message' ? { content: [], status: 'in_progress' } : { status: 'in_progress' };
}

function deltas(item: Item, at: Item, split: Split): readonly Item[] {
  const told = (type: string, text: unknown) =>
    pieces(String(text), split).map((delta) => ({ type: `response.${type}`, ...at, delta }));
  if (item.type === 'function_call')
    return [
      ...told('function_call_arguments.delta', item.arguments),
      { type: 'response.function_call_arguments.done', ...at, arguments: item.arguments },
    ];
  if (item.type === 'custom_tool_call') return told('custom_tool_call_input.delta', item.input);
  if (item.type === 'reasoning')
    return (item.summary as readonly Item[]).flatMap(({ text }, summary_index) => [
      { type: 'response.reasoning_summary_part.added', ...at, summary_index },
      ...told('reasoning_summary_text.delta', text).map((event) => ({ ...event, summary_index })),
    ]);
  if (item.type !== 'message') return [];
  return (item.content as readonly Item[]).flatMap((part) =>
    part.type === 'refusal' ? told('refusal.delta', part.refusal) : told('output_text.delta', part.text),
  );
}

function pieces(text: string, split: Split): readonly string[] {
  if (typeof split === 'function') return split(text);
  return text.match(new RegExp(`[^]{1,${split}}`, 'g')) ?? [];
}
