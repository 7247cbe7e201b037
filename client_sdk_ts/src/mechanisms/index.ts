/** Every mechanism of this device.  An application that names the ones it needs is smaller. */

import { block_design } from "./block_design.js";
import { cover } from "./cover.js";
import { discrete_laplace } from "./discrete_laplace.js";
import { duchi } from "./duchi.js";
import { exponential } from "./exponential.js";
import { grr } from "./grr.js";
import { hadamard } from "./hadamard.js";
import { hierarchy } from "./hierarchy.js";
import { hybrid } from "./hybrid.js";
import { minimax } from "./minimax.js";
import { olh } from "./olh.js";
import { one_bit_mean } from "./one_bit_mean.js";
import { oue } from "./oue.js";
import { padding_sampling } from "./padding_sampling.js";
import { pckv_grr } from "./pckv_grr.js";
import { pckv_ue } from "./pckv_ue.js";
import { pem } from "./pem.js";
import { pgr } from "./pgr.js";
import { piecewise } from "./piecewise.js";
import { privset } from "./privset.js";
import { sampled_item } from "./sampled_item.js";
import { square_wave } from "./square_wave.js";
import { subset_selection } from "./subset_selection.js";
import { sue } from "./sue.js";
import type { Mechanism } from "./mechanism.js";

export { block_design, cover, discrete_laplace, duchi, exponential, grr, hadamard, hierarchy, hybrid, minimax, olh, one_bit_mean, oue, padding_sampling, pckv_grr, pckv_ue, pem, pgr, piecewise, privset, sampled_item, square_wave, subset_selection, sue };
export type { Channel, Encoded, Mechanism, Position } from "./mechanism.js";

export const allMechanisms: readonly Mechanism[] = [
  grr,
  sue,
  oue,
  subset_selection,
  pgr,
  olh,
  block_design,
  hadamard,
  exponential,
  hierarchy,
  cover,
  duchi,
  piecewise,
  hybrid,
  minimax,
  one_bit_mean,
  square_wave,
  discrete_laplace,
  sampled_item,
  padding_sampling,
  privset,
  pckv_ue,
  pckv_grr,
  pem,
];
