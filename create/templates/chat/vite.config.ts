import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  root: 'web',
  build: { outDir: '../dist', emptyOutDir: true },
  plugins: [react()],
  // `npm run dev`: the page comes from Vite, the chat from server/main.ts.
  server: { proxy: { '/api': 'http://127.0.0.1:3000' } },
});
