import type { ReplyAttachment } from '../../contract/llm-provider.js';
import { jsonRecord, jsonText } from './wire-json.js';

/** The source that an annotation names; its fields stand in it, or one level deeper under its type. */
export function citedAttachment(annotation: unknown): readonly ReplyAttachment[] {
  const outer = jsonRecord(annotation);
  const type = jsonText(outer.type);
  const { url, title, filename } = { ...outer, ...jsonRecord(outer[type]) };
  if (type === 'url_citation' && jsonText(url) !== '')
    return [{ type: 'page', url: jsonText(url), ...(title ? { title: jsonText(title) } : {}) }];
  const name = jsonText(filename);
  return type === 'file_citation' && name !== '' ? [{ type: 'document', title: name, filename: name }] : [];
}

/** An image that the model made: in base64, or as a URL, which may be a data URL. */
export function imageAttachment(image: unknown, mimeType = 'image/png'): readonly ReplyAttachment[] {
  const text = jsonText(image);
  if (text === '') return [];
  const [, own = mimeType] = /^data:([^;,]+)/.exec(text) ?? [];
  const url = /^(?:data|https?):/.test(text) ? text : `data:${mimeType};base64,${text}`;
  return [{ type: 'file', url, mimeType: own }];
}
