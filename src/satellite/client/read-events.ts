/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** The events of a body; comments and unknown fields are passed over. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let fields: Record<string, string> = {};
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') fields = withField(fields, line);
      else if (fields.data === undefined) fields = {};
      else {
        yield { event: fields.event ?? 'message', data: fields.data, id: fields.id };
        fields = {};
      }
    }
  }
}

function withField(fields: Record<string, string>, line: string): Record<string, string> {
  // With `s`: a line of JSON may hold U+2028, which ends no line of an event.
  const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  if (name !== 'event' && name !== 'data' && name !== 'id') return fields;
  const before = name === 'data' && fields.data !== undefined ? `${fields.data}\n` : '';
  return { ...fields, [name]: before + value };
}
