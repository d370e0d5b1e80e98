import { defineTool } from 'toolwright';
import { z } from 'zod';

/** A tool of your own beside the toolboxes. */
export const postToday = defineTool({
  name: 'post_today',
  description: 'Tell which letters and parcels arrive today',
  parameters: z.object({ name: z.string().describe('Name of the receiver') }),
  annotations: { readOnly: true },
  execute: ({ name }) => `Nothing arrives for ${name} today.`,
});
