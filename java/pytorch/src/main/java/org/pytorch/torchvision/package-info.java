/** Pictures of Android as tensors. */
package org.pytorch.torchvision;
