/** What build tools call the plugin when they complain. */
export const PLUGIN_NAME = 'toolwright';
