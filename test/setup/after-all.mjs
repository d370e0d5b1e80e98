// Jest's globalTeardown.
import stopServices from '../services/stop-services.mjs';
import { closeMemoryFolder } from './memory-folder.mjs';

// Jest requires a default export.
export default async function afterAll() {
  await stopServices();
  closeMemoryFolder();
}
