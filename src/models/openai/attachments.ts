import type { ReplyAttachment } from '../../core/contract/llm-provider.js';
import { jsonRecord, jsonText } from '../wire/wire-json.js';

/** The only link schemes for pages: browsers may execute others, or show content chosen by the author of the reply. */
const WEB = /^https?:\/\//i;

/** The source in an annotation; its fields are in the annotation itself, or one level deeper under its type. */
export function citedAttachment(annotation: unknown): readonly ReplyAttachment[] {
  const outer = jsonRecord(annotation);
  const type = jsonText(outer.type);
  const { url, title, filename } = { ...outer, ...jsonRecord(outer[type]) };
  if (type === 'url_citation') {
    const address = jsonText(url);
    return WEB.test(address)
      ? [{ type: 'page', url: address, ...(title ? { title: jsonText(title) } : {}) }]
      : [];
  }
  const name = jsonText(filename);
  return type === 'file_citation' && name !== '' ? [{ type: 'document', title: name, filename: name }] : [];
}

/** A generated image: base64, or a URL, which may be a data URL. */
export function imageAttachment(image: unknown, mimeType = 'image/png'): readonly ReplyAttachment[] {
  const text = jsonText(image);
  if (text === '') return [];
  const [, own = mimeType] = /^data:([^;,]+)/.exec(text) ?? [];
  if (WEB.test(text)) return [{ type: 'file', url: text, mimeType }];
  if (!text.startsWith('data:')) return [{ type: 'file', url: `data:${mimeType};base64,${text}`, mimeType }];
  return own.startsWith('image/') ? [{ type: 'file', url: text, mimeType: own }] : [];
}
