/**
 * The metrics of editor.
 *
 * Made by `hearsay registry codegen --language typescript`; do not edit, make it anew when the
 * registry changes.
 */

import { grr } from "hearsay-telemetry/mechanisms/grr";
import { hybrid } from "hearsay-telemetry/mechanisms/hybrid";
import { count } from "hearsay-telemetry/types/count";
import { duration } from "hearsay-telemetry/types/duration";
import { aggregates } from "hearsay-telemetry/parts/aggregates";

/** Each metric with the type of its values, for `Client<Metrics>`. */
export type Metrics = {
  /**
   * Theme
   *
   * Which theme should be the default?
   *
   * Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
   */
  "theme": "light" | "dark" | "system";
  /**
   * Plug-ins in use
   *
   * Do enough people use plug-ins to go on with them?
   *
   * Reported at most once every 7d, at ε 1 a report, until 2027-12-31.
   */
  "uses_plugins": boolean;
  /**
   * Start-up time
   *
   * Did the last release make starting slower?
   *
   * From 0 to 5000 ms; what lies beyond counts as the end. Reported at most once every 7d, at ε 1 a
   * report, until 2027-12-31.
   */
  "startup_ms": number;
  /**
   * Saves a day
   *
   * Is saving by itself worth building?
   *
   * From 0 to 200 saves; what lies beyond counts as the end. The values of a period make one
   * report: the sum, or else 0 saves. Reported at most once every 1d, at ε 1/4 a report, until
   * 2027-12-31.
   */
  "saves": number;
};

/** Mechanisms, types and parts that these metrics need, and no other. */
export const mechanisms = [grr, hybrid, count, duration, aggregates] as const;

/** What `hearsay registry compile` writes of the same registry. */
export const registry: string = "{\"hearsay_registry\":1,\"app\":\"editor\",\"automation\":\"ignore\",\"retire_key\":null,\"segments\":{\"platform\":[\"linux\",\"macos\",\"windows\"]},\"panel_week\":null,\"seats\":null,\"caps\":{\"report\":\"4\",\"metric_week\":\"8\",\"week\":\"8\",\"lifetime\":\"1000\",\"delta\":\"0.00001\"},\"notice\":\"editor would like to learn how it is used, without learning what you do.\\n\\nIt asks:\\n- Theme (every week): Which theme should be the default?\\n- Plug-ins in use (every week): Do enough people use plug-ins to go on with them?\\n- Start-up time (every week): Did the last release make starting slower?\\n- Saves a day (every day): Is saving by itself worth building?\\n\\nBefore an answer leaves this device, it is changed by chance. What is sent may\\nbe true or not: nobody can tell, editor and its makers included. Only over\\nthousands of people does chance cancel out. A report has a date, your\\nplatform, and nothing that names you or this device.\\n\\nHow much this gives away: a whole day of reports costs at most \\u03b5 3.25. In\\nplain words: of two stories about you, a day's reports make neither look more\\nthan 25.8 times as likely as before. Somebody who guesses which of the two is\\ntrue would be right at most 97 times in 100, and 50 times without any report.\\nIn any seven days it is at most \\u03b5 7.75, in any 365 days at most \\u03b5 250.25, and\\nfor as long as you use editor at most \\u03b5 1,000; then it stops by itself. If\\nsomebody sets the clock of this device and restarts it over and over, any\\nseven days can cost at most \\u03b5 40. What is for life stays the same.\\n\\nYou can say no, and change your mind at any time. A no deletes what waits to\\nbe sent. A no of your system or browser, such as DO_NOT_TRACK=1, is always\\nobeyed.\\n\",\"metrics\":[{\"name\":\"theme\",\"title\":\"Theme\",\"question\":\"Which theme should be the default?\",\"explanation\":\"Theme (theme)\\nWhat is asked: Which theme should be the default? The answer is one of: light, dark, system.\\nWhat is sent: at most once a week, 1 byte made from the answer and from chance by grr, with the date of the period, your platform and nothing that names you or this device.\\nWhat it proves: nothing for certain. A report points to the true answer with a chance of at most 57.7 %, and to each other answer with at least 21.1 %. It shifts nobody's odds by more than 2.8 to 1. Someone who sees the report and guesses between two answers is right at most 74 times in 100; a coin is right 50 times.\\nWhat it costs: \\u03b5 1 a report (odds shift by at most 2.8 to 1), \\u03b5 2 in any seven days, \\u03b5 53 in any 365 days and \\u03b5 1,000 for life. The caps of this application, over all its questions together, are \\u03b5 8 in seven days and \\u03b5 1,000 for life. If somebody sets the clock of this device and restarts it over and over, any seven days can cost at most 5 times the cap.\",\"owner\":\"design team\",\"type\":\"category\",\"domain\":{\"values\":[\"light\",\"dark\",\"system\"]},\"domain_size\":3,\"epsilon\":\"1\",\"epsilon_permanent\":null,\"every\":\"7d\",\"longitudinal\":\"fresh\",\"mechanism\":{\"name\":\"grr\"},\"constants\":{\"truth\":\"937c656abe1d6f67ccdfd33d7730d2ac\"},\"digest\":\"9a5d6d2ce2ea\",\"payload_size\":1,\"spent\":{\"report\":1000000000,\"value\":null,\"delta\":0},\"segments\":[\"platform\"],\"expected_devices\":50000,\"min_reports\":1000,\"expires\":\"2027-12-31\",\"aggregate\":null,\"otherwise\":null,\"need\":null,\"shape\":\"any\",\"robust\":true,\"weight\":1,\"panel\":true},{\"name\":\"uses_plugins\",\"title\":\"Plug-ins in use\",\"question\":\"Do enough people use plug-ins to go on with them?\",\"explanation\":\"Plug-ins in use (uses_plugins)\\nWhat is asked: Do enough people use plug-ins to go on with them? The answer is one of: false, true.\\nWhat is sent: at most once a week, 1 byte made from the answer and from chance by grr, with the date of the period and nothing that names you or this device.\\nWhat it proves: nothing for certain. A report points to the true answer with a chance of at most 73.2 %, and to each other answer with at least 26.8 %. It shifts nobody's odds by more than 2.8 to 1. Someone who sees the report and guesses between two answers is right at most 74 times in 100; a coin is right 50 times.\\nWhat it costs: \\u03b5 1 a report (odds shift by at most 2.8 to 1), \\u03b5 2 in any seven days, \\u03b5 53 in any 365 days and \\u03b5 1,000 for life. The caps of this application, over all its questions together, are \\u03b5 8 in seven days and \\u03b5 1,000 for life. If somebody sets the clock of this device and restarts it over and over, any seven days can cost at most 5 times the cap.\",\"owner\":\"platform team\",\"type\":\"boolean\",\"domain\":{\"values\":[\"false\",\"true\"]},\"domain_size\":2,\"epsilon\":\"1\",\"epsilon_permanent\":null,\"every\":\"7d\",\"longitudinal\":\"fresh\",\"mechanism\":{\"name\":\"grr\"},\"constants\":{\"truth\":\"bb26a7aead15e6ca251dc438cb611a74\"},\"digest\":\"5ec7bb2336a9\",\"payload_size\":1,\"spent\":{\"report\":1000000000,\"value\":null,\"delta\":0},\"segments\":[],\"expected_devices\":50000,\"min_reports\":1000,\"expires\":\"2027-12-31\",\"aggregate\":null,\"otherwise\":null,\"need\":null,\"shape\":\"any\",\"robust\":true,\"weight\":1,\"panel\":true},{\"name\":\"startup_ms\",\"title\":\"Start-up time\",\"question\":\"Did the last release make starting slower?\",\"explanation\":\"Start-up time (startup_ms)\\nWhat is asked: Did the last release make starting slower? The answer is a number from 0 to 5000 ms.\\nWhat is sent: at most once a week, 1 byte made from the answer and from chance by hybrid, with the date of the period, your platform and nothing that names you or this device.\\nWhat it proves: nothing for certain. Any value could have given this report. It shifts nobody's odds by more than 2.8 to 1. Someone who sees the report and guesses between two answers is right at most 74 times in 100; a coin is right 50 times.\\nWhat it costs: \\u03b5 1 a report (odds shift by at most 2.8 to 1), \\u03b5 2 in any seven days, \\u03b5 53 in any 365 days and \\u03b5 1,000 for life. The caps of this application, over all its questions together, are \\u03b5 8 in seven days and \\u03b5 1,000 for life. If somebody sets the clock of this device and restarts it over and over, any seven days can cost at most 5 times the cap.\",\"owner\":\"performance team\",\"type\":\"duration\",\"domain\":{\"min\":\"0\",\"max\":\"5000\",\"step\":\"10\",\"unit\":\"ms\"},\"domain_size\":501,\"epsilon\":\"1\",\"epsilon_permanent\":null,\"every\":\"7d\",\"longitudinal\":\"fresh\",\"mechanism\":{\"name\":\"hybrid\",\"steps\":33,\"width\":21},\"constants\":{\"truth\":\"bb26a7aead15e6ca251dc438cb611a74\",\"inside\":\"a23884bf9a03354d95578e44006e88cc\",\"coin\":\"668b07c52a90e2dc0000000000000000\"},\"digest\":\"6d1cf69031cb\",\"payload_size\":1,\"spent\":{\"report\":1000000000,\"value\":null,\"delta\":0},\"segments\":[\"platform\"],\"expected_devices\":50000,\"min_reports\":1000,\"expires\":\"2027-12-31\",\"aggregate\":null,\"otherwise\":null,\"need\":null,\"shape\":\"any\",\"robust\":true,\"weight\":1,\"panel\":true},{\"name\":\"saves\",\"title\":\"Saves a day\",\"question\":\"Is saving by itself worth building?\",\"explanation\":\"Saves a day (saves)\\nWhat is asked: Is saving by itself worth building? The answer is a number from 0 to 200 saves.\\nWhat is sent: at most once a day, 1 byte made from all answers of a period (the sum, or else 0 saves) and from chance by hybrid, with the date of the period and nothing that names you or this device.\\nWhat it proves: nothing for certain. Any value could have given this report. It shifts nobody's odds by more than 1.3 to 1. Someone who sees the report and guesses between two answers is right at most 57 times in 100; a coin is right 50 times.\\nWhat it costs: \\u03b5 0.25 a report (odds shift by at most 1.3 to 1), \\u03b5 1.75 in any seven days, \\u03b5 91.25 in any 365 days and \\u03b5 1,000 for life. The caps of this application, over all its questions together, are \\u03b5 8 in seven days and \\u03b5 1,000 for life. If somebody sets the clock of this device and restarts it over and over, any seven days can cost at most 5 times the cap.\",\"owner\":\"design team\",\"type\":\"count\",\"domain\":{\"min\":\"0\",\"max\":\"200\",\"step\":\"1\",\"unit\":\"saves\"},\"domain_size\":201,\"epsilon\":\"1/4\",\"epsilon_permanent\":null,\"every\":\"1d\",\"longitudinal\":\"fresh\",\"mechanism\":{\"name\":\"hybrid\",\"steps\":1,\"width\":1},\"constants\":{\"truth\":\"8feacc95e25c1a7e057b56477fbec082\"},\"digest\":\"7956cb41d80a\",\"payload_size\":1,\"spent\":{\"report\":250000000,\"value\":null,\"delta\":0},\"segments\":[],\"expected_devices\":50000,\"min_reports\":1000,\"expires\":\"2027-12-31\",\"aggregate\":\"sum\",\"otherwise\":{\"value\":\"0\",\"encoded\":\"00000000000000000000000000000000\"},\"need\":null,\"shape\":\"grid\",\"robust\":true,\"weight\":1,\"panel\":true}],\"checksum\":\"28175bceb815c823e2293e29dee942327fab91b884192bb36e301a9c9a4cfdba\"}";
