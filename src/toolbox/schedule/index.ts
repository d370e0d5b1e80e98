export {
  type AddedSchedule,
  type NewSchedule,
  Schedules,
  type SchedulesOptions,
  ScheduleTools,
  scheduleTools,
} from './schedule-tools.js';
