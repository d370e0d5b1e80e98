import type { ReplyAttachment } from '../../contract/llm-provider.js';
import { jsonRecord, jsonText } from './wire-json.js';

/** What a page may link to: other addresses are run by browsers, or show what whoever wrote the reply wants. */
const WEB = /^https?:\/\//i;

/** The source that an annotation names; its fields stand in it, or one level deeper under its type. */
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

/** An image that the model made: in base64, or as a URL, which may be a data URL. */
export function imageAttachment(image: unknown, mimeType = 'image/png'): readonly ReplyAttachment[] {
  const text = jsonText(image);
  if (text === '') return [];
  const [, own = mimeType] = /^data:([^;,]+)/.exec(text) ?? [];
  if (WEB.test(text)) return [{ type: 'file', url: text, mimeType }];
  if (!text.startsWith('data:')) return [{ type: 'file', url: `data:${mimeType};base64,${text}`, mimeType }];
  return own.startsWith('image/') ? [{ type: 'file', url: text, mimeType: own }] : [];
}
