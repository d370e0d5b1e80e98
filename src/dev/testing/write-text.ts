import { nodeFiles } from '../../core/kernel/node-module.js';

/** Writes a file, and creates its folder. */
export function writeText(file: string, text: string): void {
  const { mkdirSync, writeFileSync } = nodeFiles();
  mkdirSync(file.replace(/[^/\\]*$/, '') || '.', { recursive: true });
  writeFileSync(file, text);
}
