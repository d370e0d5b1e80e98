export { MessageTools, type TaskItem, TaskLists, TaskTools, taskTools } from './task-tools.js';
