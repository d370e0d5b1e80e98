/** Text for the model. The key is `content`, not `text`. */
export interface TextPart {
  readonly type: 'text';
  readonly content: string;
}

/** An image, base64 in `data`. */
export interface ImagePart {
  readonly type: 'image';
  readonly data: string;
  readonly mimeType: string;
}

/** A file, base64 in `data`. */
export interface FilePart {
  readonly type: 'file';
  readonly data: string;
  readonly mimeType: string;
  readonly filename: string;
}

/** One block of what a tool gives to the model. */
export type ContentPart = TextPart | ImagePart | FilePart;

/** What a tool gives to the model, in order. */
export type Content = readonly ContentPart[];
