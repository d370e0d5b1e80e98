export type { JournaledChange } from './change-journal.js';
export { DiskFileSystem, type DiskFileSystemOptions } from './disk-file-system.js';
export type { TextEdit } from './edit-text.js';
export {
  type ByteRange,
  type FileBytes,
  type FileInfo,
  type FileKind,
  type FileProblem,
  FileSystem,
  FileSystemError,
  type FolderEntry,
  type FolderVisitor,
  type WalkedFolder,
  type WalkOptions,
  type WriteCondition,
} from './file-system.js';
export { type FileLimits, FileTools, fileTools } from './file-tools.js';
export { JournaledFileSystem, type JournalOptions } from './journaled-file-system.js';
export { MemoryFileSystem } from './memory-file-system.js';
