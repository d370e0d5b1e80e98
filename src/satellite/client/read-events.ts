/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** The events of a body; comments and unknown fields are passed over. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let fields: Record<string, string> = {};
  for await (const line of readLines(body)) {
    if (line !== '') fields = withField(fields, line);
    else if (fields.data === undefined) fields = {};
    else {
      yield { event: fields.event ?? 'message', data: fields.data, id: fields.id };
      fields = {};
    }
  }
}

/** Each piece is looked at once, however long its line gets. */
async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  /** Maybe the first half of a line's end. */
  let carriage = '';
  for await (const chunk of body) {
    const text = carriage + decoder.decode(chunk, { stream: true });
    carriage = text.endsWith('\r') ? '\r' : '';
    const lines = (carriage === '' ? text : text.slice(0, -1)).split(/\r\n|\n|\r/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      yield begun.length === 0 ? line : begun.join('') + line;
      begun = [];
    }
    if (last !== '') begun.push(last);
  }
}

function withField(fields: Record<string, string>, line: string): Record<string, string> {
  // With `s`: a line of JSON may hold U+2028, which ends no line of an event.
  const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  if (name !== 'event' && name !== 'data' && name !== 'id') return fields;
  const before = name === 'data' && fields.data !== undefined ? `${fields.data}\n` : '';
  return { ...fields, [name]: before + value };
}
