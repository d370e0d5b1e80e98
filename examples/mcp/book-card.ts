import type { McpApp } from 'toolwright';

/** The view of a book. It uses the messages of MCP Apps directly, without a library. */
export const BookCard: McpApp = {
  uri: 'ui://library/book-card',
  title: 'Book',
  prefersBorder: true,
  html: `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Book</title>
    <style>
      :root { color-scheme: light dark; font-family: var(--font-sans, system-ui); }
      body { margin: 0; padding: 1rem; color: var(--color-text-primary, CanvasText); }
      h1 { font-size: 1.1rem; margin: 0; }
    </style>
  </head>
  <body>
    <h1 id="title">A book is looked up …</h1>
    <p id="about"></p>
    <button id="again" hidden>Look again</button>
    <script>
      const answers = new Map();
      const send = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
      const request = (method, params) =>
        new Promise((resolve, reject) => {
          const id = answers.size + 1;
          answers.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
          send({ id, method, params });
        });

      const element = (id) => document.getElementById(id);
      const show = ({ structuredContent: book, content }) => {
        element('title').textContent = book ? book.title : content[0].text;
        if (!book) return;
        const state = book.borrowedBy ? 'lent to ' + book.borrowedBy : 'on the shelf';
        element('about').textContent = book.author + ', ' + state;
        element('again').hidden = false;
        element('again').onclick = async () =>
          show(await request('tools/call', { name: 'show_book', arguments: { isbn: book.isbn } }));
      };

      addEventListener('message', ({ source, data }) => {
        if (source !== parent) return;
        if (data.method === 'ui/notifications/tool-result') show(data.params);
        else if (data.method !== undefined && data.id !== undefined) send({ id: data.id, result: {} });
        else if (data.method === undefined) answers.get(data.id)?.(data);
      });

      request('ui/initialize', {
        protocolVersion: '2026-01-26',
        appInfo: { name: 'book-card', version: '1.0.0' },
        appCapabilities: {},
      }).then(() => {
        send({ method: 'ui/notifications/initialized' });
        new ResizeObserver(() => {
          const { scrollWidth: width, scrollHeight: height } = document.documentElement;
          send({ method: 'ui/notifications/size-changed', params: { width, height } });
        }).observe(document.body);
      });
    </script>
  </body>
</html>`,
};
