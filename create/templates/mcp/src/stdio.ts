import { createServer } from './server.js';

// Standard output belongs to the protocol: log to standard error only.
await createServer().stdio().closed;
