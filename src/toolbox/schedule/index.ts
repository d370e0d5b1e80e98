export { ScheduleTools, scheduleTools } from './schedule-tools.js';
export { type AddedSchedule, type NewSchedule, Schedules, type SchedulesOptions } from './schedules.js';
