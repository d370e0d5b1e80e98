// Jest's globalSetup.
import findServices from '../services/find-services.mjs';
import { openMemoryFolder } from './memory-folder.mjs';

// Jest requires a default export.
export default async function beforeAll() {
  openMemoryFolder();
  await findServices();
}
