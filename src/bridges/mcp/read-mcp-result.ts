import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { ContentPart } from '../../contract/content-part.js';
import { ToolResult } from '../../contract/tool-result.js';
import { textOf } from '../../invocation/write-result.js';

/**
 * What a server answered, as the result of its tool. Text in resources is text for the model;
 * `structuredContent` is in `details`. Blocks whose only audience is the user are `forUser`.
 */
export function readMcpResult({ content, structuredContent, isError = false }: CallToolResult): ToolResult {
  const [shown, read] = [content.filter(isForUser), content.filter((block) => !isForUser(block))];
  const parts = read.map(partOf);
  const isPlain = parts.every(({ type }) => type === 'text');
  const words = wordsOf(parts, structuredContent);
  return new ToolResult({
    forLLM: words === '' && isPlain && shown.length > 0 ? ALL_FOR_USER : words,
    isError,
    ...(shown.length > 0 ? { forUser: shown.map(partOf).map(userText).join('\n') } : {}),
    ...(isPlain ? {} : { content: parts }),
    ...(structuredContent === undefined ? {} : { details: structuredContent }),
  });
}

/** A model that reads nothing takes the call for one that failed. */
const ALL_FOR_USER = 'Done. The result is for the user.';

function isForUser({ annotations }: ContentBlock): boolean {
  const { audience } = annotations ?? {};
  return audience !== undefined && audience.length > 0 && audience.every((reader) => reader === 'user');
}

function userText(part: ContentPart): string {
  if (part.type === 'text') return part.content;
  return part.type === 'image' ? `[${part.mimeType}]` : `[${part.mimeType}: ${part.filename}]`;
}

function wordsOf(parts: readonly ContentPart[], structuredContent: unknown): string {
  const text = textOf(parts);
  if (text !== '' || structuredContent === undefined) return text;
  return JSON.stringify(structuredContent);
}

function partOf(block: ContentBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', content: block.text };
    case 'image':
      return { type: 'image', data: block.data, mimeType: block.mimeType };
    case 'audio':
      return { type: 'file', data: block.data, mimeType: block.mimeType, filename: 'audio' };
    case 'resource_link':
      return {
        type: 'text',
        content: [block.uri, block.title ?? block.name, block.description].filter(Boolean).join('\n'),
      };
    case 'resource':
      return resourceOf(block.resource);
  }
}

function resourceOf(resource: Extract<ContentBlock, { type: 'resource' }>['resource']): ContentPart {
  const { uri, mimeType = 'application/octet-stream' } = resource;
  if ('text' in resource) return { type: 'text', content: `${uri}\n${resource.text}` };
  return { type: 'file', data: resource.blob, mimeType, filename: uri };
}
