/** The compiler options that a generated file depends on, as every compiler has them once tsconfig.json is read. */
export interface ProjectOptions {
  /** The numbers are the same in all versions: 1 is CommonJS, 5 to 99 ES modules, 100 to 199 Node’s, 200 Preserve. */
  readonly module?: number;
  /** 3 and 99 are Node’s, 100 is a bundler’s. */
  readonly moduleResolution?: number;
  readonly allowImportingTsExtensions?: boolean;
  readonly rewriteRelativeImportExtensions?: boolean;
  readonly experimentalDecorators?: boolean;
  readonly noEmit?: boolean;
  readonly emitDeclarationOnly?: boolean;
  readonly paths?: Readonly<Record<string, readonly string[]>>;
  /** Absolute: what `paths` are relative to where there is no `baseUrl`. */
  readonly pathsBasePath?: string;
  /** Absolute; TypeScript 7 has none. */
  readonly baseUrl?: string;
}
