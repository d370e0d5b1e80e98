import { expect, test } from '@jest/globals';
import { type LLMProvider, type ReplyAttachment, streamToolLoop } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const PAGE: ReplyAttachment = { type: 'page', url: 'https://example.org/a', title: 'A' };
const FILE: ReplyAttachment = { type: 'file', url: 'data:image/png;base64,AQID', mimeType: 'image/png' };

async function told(provider: LLMProvider, more: object = {}): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  const config = { provider, model: 'm', ...more };
  for await (const event of streamToolLoop(config, [{ role: 'user', content: 'Hi' }]))
    if (event.type === 'attachment') seen.push(event.attachment);
    else if (event.type === 'text-delta') seen.push(event.text);
  return seen;
}

test('streamToolLoop emits the attachments of a reply after its text', async () => {
  expect(await told(new ScriptedProvider([{ content: 'Said', attachments: [PAGE, FILE] }]))).toEqual([
    'Said',
    PAGE,
    FILE,
  ]);
});

test('streamToolLoop emits attachments of non-streaming providers and of replies that hooks buffer', async () => {
  const chat = async () =>
    ({ content: 'Said', toolCalls: [], finishReason: 'stop', attachments: [PAGE] }) as const;
  expect(await told({ chat })).toEqual(['Said', PAGE]);
  const hooks = [{ afterResponse: () => undefined }];
  expect(await told(new ScriptedProvider([{ content: 'Said', attachments: [PAGE] }]), { hooks })).toEqual([
    'Said',
    PAGE,
  ]);
});

test('streamToolLoop leaves out invalid attachments', async () => {
  const wrong = [null, 1, { type: 'page' }, { type: 'file', url: 'data:,x' }, { type: 'document' }, PAGE];
  expect(await told(new ScriptedProvider([{ content: 'Said', attachments: wrong as never }]))).toEqual([
    'Said',
    PAGE,
  ]);
});
