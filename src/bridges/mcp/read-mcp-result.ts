import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { ContentPart } from '../../contract/content-part.js';
import { ToolResult } from '../../contract/tool-result.js';
import { textOf } from '../../invocation/write-result.js';

/**
 * What a server answered, as the result of its tool. Text in resources is text for the model;
 * `structuredContent` is in `details`.
 */
export function readMcpResult({ content, structuredContent, isError = false }: CallToolResult): ToolResult {
  const parts = content.map(partOf);
  const isPlain = parts.every(({ type }) => type === 'text');
  return new ToolResult({
    forLLM: wordsOf(parts, structuredContent),
    isError,
    ...(isPlain ? {} : { content: parts }),
    ...(structuredContent === undefined ? {} : { details: structuredContent }),
  });
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
