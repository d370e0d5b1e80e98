export { DiskFileSystem, type DiskFileSystemOptions } from './disk-file-system.js';
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
export { type FileLimits, FileTools, fileTools, type TextEdit } from './file-tools.js';
export { type JournaledChange, JournaledFileSystem, type JournalOptions } from './journaled-file-system.js';
export { MemoryFileSystem } from './memory-file-system.js';
