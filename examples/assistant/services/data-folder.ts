/** Token of the folder that holds everything the assistant keeps: an absolute path (string). */
export const DATA_FOLDER = Symbol('data folder');
