/** Token of the open database: a `DatabaseSync`. */
export const DATABASE = Symbol('database');
