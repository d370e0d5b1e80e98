import { expect, test } from '@jest/globals';
import { OpenAIProvider } from 'toolwright/openai';
import { collect, completion, events, json, LoopbackServer } from './loopback-server.js';
import { eventsOf, responseOf } from './responses-bodies.js';

const REQUEST = { model: 'gpt-5', messages: [{ role: 'user', content: 'Look it up' }], options: {} } as const;

const PAGE = { type: 'url_citation', start_index: 0, end_index: 4, url: 'https://example.org/a', title: 'A' };
const FILE = { type: 'file_citation', file_id: 'file_1', filename: 'terms.pdf', index: 4 };
const CITED = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Said', annotations: [PAGE, FILE, { type: 'file_path' }, null] }],
};
const IMAGE = {
  id: 'ig_1',
  type: 'image_generation_call',
  status: 'completed',
  output_format: 'webp',
  result: 'UklGRg==',
};

test.each(['chat', 'stream'] as const)(
  'OpenAIProvider of responses returns citations and generated images as attachments (%s)',
  async (method) => {
    const reply = responseOf([CITED, IMAGE]);
    await using server = await LoopbackServer.start(
      method === 'chat' ? json(reply) : events(eventsOf(reply), ''),
    );
    const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k', api: 'responses' });
    const attachments = [
      { type: 'page', url: 'https://example.org/a', title: 'A' },
      { type: 'document', title: 'terms.pdf', filename: 'terms.pdf' },
      { type: 'file', url: 'data:image/webp;base64,UklGRg==', mimeType: 'image/webp' },
    ];
    if (method === 'chat')
      expect(await provider.chat(REQUEST)).toMatchObject({ content: 'Said', attachments });
    else {
      const parts = await collect(provider.stream(REQUEST));
      const told = parts.flatMap((part) => (part.type === 'attachment' ? [part.attachment] : []));
      expect(told).toEqual(attachments);
      expect(parts.at(-1)).toMatchObject({ response: { content: 'Said', attachments } });
    }
  },
);

const CITATION = { type: 'url_citation', url_citation: { url: 'https://example.org/a', title: 'A' } };
const PICTURE = { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,/9j/' } };
const MESSAGE = { role: 'assistant', content: 'Said', annotations: [CITATION], images: [PICTURE] };

test.each(['chat', 'stream'] as const)(
  'OpenAIProvider returns the annotations and images of a message as attachments (%s)',
  async (method) => {
    const chunks = [
      { choices: [{ index: 0, delta: MESSAGE }] },
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    ];
    const whole = { choices: [{ index: 0, message: MESSAGE, finish_reason: 'stop' }] };
    await using server = await LoopbackServer.start(method === 'chat' ? json(whole) : events(chunks));
    const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k' });
    const attachments = [
      { type: 'page', url: 'https://example.org/a', title: 'A' },
      { type: 'file', url: 'data:image/jpeg;base64,/9j/', mimeType: 'image/jpeg' },
    ];
    if (method === 'chat')
      expect(await provider.chat(REQUEST)).toMatchObject({ content: 'Said', attachments });
    else {
      const parts = await collect(provider.stream(REQUEST));
      expect(parts.map(({ type }) => type)).toEqual(['text-delta', 'attachment', 'attachment', 'response']);
      expect(parts.at(-1)).toMatchObject({ response: { attachments } });
    }
  },
);

test('OpenAIProvider omits attachments if the reply has no annotations or images', async () => {
  await using server = await LoopbackServer.start(json(completion({ content: 'Hello' })));
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k' });
  expect(await provider.chat(REQUEST)).not.toHaveProperty('attachments');
});

test('OpenAIProvider drops attachments whose URL could run a script', async () => {
  const cited = ['javascript:alert(1)', 'data:text/html,x', 'java\nscript:alert(1)', 'HTTPS://example.org/a'];
  const annotations = cited.map((url) => ({ type: 'url_citation', url }));
  const image = { type: 'image_url', image_url: { url: 'data:text/html;base64,PGI+' } };
  const message = { role: 'assistant', content: 'Said', annotations, images: [image] };
  const whole = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
  await using server = await LoopbackServer.start(json(whole));
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k' });
  const { attachments } = await provider.chat(REQUEST);
  expect(attachments).toEqual([{ type: 'page', url: 'HTTPS://example.org/a' }]);
});
