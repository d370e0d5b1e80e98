/** Token of the folder with all data of the assistant: an absolute path (string). */
export const DATA_FOLDER = Symbol('data folder');
