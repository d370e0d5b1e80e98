import { createChatServer } from './create-server.js';

const port = Number(process.env.PORT || 3000);
const { server, close } = await createChatServer({ path: 'chats.sqlite' });
server.once('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EADDRINUSE') throw error;
  console.error(`Port ${port} is taken. Choose another, for example PORT=${port + 1}.`);
  process.exitCode = 1;
  void close();
});
server.listen(port, '127.0.0.1', () => console.log(`Chat: http://127.0.0.1:${port}`));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, close);
