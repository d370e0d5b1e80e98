/** An event of a stream of server-sent events. */
interface ServerEvent {
  /** Empty if the event has no name. */
  readonly event: string;
  readonly data: string;
  readonly id?: string | undefined;
}

const LINE_END = /\r\n|\r|\n/;

/**
 * Reads server-sent events as they arrive, however the bytes are cut. Leaving the iteration closes the connection.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 *
 * `dropsCut` drops an event that the end of the stream cuts off. By default it counts, because some servers omit the
 * last empty line.
 *
 * @throws the error of the connection if it is lost or aborted.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  { dropsCut = false } = {},
): AsyncGenerator<ServerEvent> {
  let event = '';
  let id: string | undefined;
  let data: string[] = [];
  for await (const lines of readLines(body))
    for (const line of lines) {
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (field === 'event') event = value;
      else if (field === 'id') id = value;
      else if (field === 'data') data.push(value);
      if (line !== '') continue;
      if (data.length > 0) yield { event, data: data.join('\n'), id };
      event = '';
      id = undefined;
      data = [];
    }
  if (data.length > 0 && !dropsCut) yield { event, data: data.join('\n'), id };
}

/** The lines in each piece of a text. */
async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  let open: string[] = [];
  let isReturn = false;
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    // A line end may be cut, too.
    const text = isReturn && piece.startsWith('\n') ? piece.slice(1) : piece;
    isReturn = piece.endsWith('\r');
    const [first = '', ...rest] = text.split(LINE_END);
    open.push(first);
    const last = rest.pop();
    if (last === undefined) continue;
    yield [open.join(''), ...rest];
    open = [last];
  }
  const last = open.join('');
  if (last !== '') yield [last];
}
