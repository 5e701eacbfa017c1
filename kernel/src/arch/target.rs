//! What the kernel is built for. For anything else the compiler says so, before it says what follows from it.

#[cfg(all(target_os = "none", not(target_arch = "aarch64")))]
compile_error!("Magpie runs on 64-bit Arm: build with `--target aarch64-unknown-none`");

#[cfg(all(target_os = "none", target_arch = "aarch64", not(target_feature = "neon")))]
compile_error!(
    "Magpie saves and uses the floating-point registers: build with `--target aarch64-unknown-none`, not for a soft-float target"
);
