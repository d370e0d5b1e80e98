import type { WebResponse } from '../network/web-access.js';

/** What a response says: as text, or as bytes of a type that is no text. */
type PageContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly type: string };

/** Characters of HTML that are converted; what comes behind is left, and told. */
const MOST_HTML = 1_000_000;

/** The text of a response: HTML as Markdown with absolute addresses, JSON and text as they are. */
export async function readPage(response: WebResponse): Promise<PageContent> {
  const header = response.headers['content-type'] ?? '';
  const type = header.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (isHtml(type)) {
    const html = decoded(response.body, charsetOf(header) ?? charsetInside(response.body));
    return { kind: 'text', text: await markdownOf(html, response.url) };
  }
  if (isText(type, response.body)) return { kind: 'text', text: decoded(response.body, charsetOf(header)) };
  return { kind: 'bytes', type: type || 'unknown type' };
}

function isHtml(type: string): boolean {
  return type === 'text/html' || type === 'application/xhtml+xml';
}

function isText(type: string, body: Uint8Array): boolean {
  if (/^text\/|[/+](?:json|xml|javascript|yaml|x-ndjson)$/.test(type)) return true;
  return type === '' && !body.subarray(0, 1_000).includes(0);
}

function charsetOf(contentType: string): string | undefined {
  return /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1];
}

/** HTML may name its encoding itself, near its beginning. */
function charsetInside(body: Uint8Array): string | undefined {
  return charsetOf(Buffer.from(body.subarray(0, 2_048)).toString('latin1'));
}

/** An encoding that nobody knows is read as UTF-8. */
function decoded(body: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}

async function markdownOf(html: string, base: string): Promise<string> {
  // Only pages of HTML need it.
  const { htmlToMarkdown } = await import('@mdream/js');
  const text = htmlToMarkdown(html.slice(0, MOST_HTML), { origin: base });
  return html.length > MOST_HTML ? `${text}\n\n[The rest of the page was too long to be converted.]` : text;
}
