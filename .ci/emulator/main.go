// Command emulator is the first and only process of a guest that .ci/avx512 boots: it
// runs every program in /tests in its folder, prints what they print, says how it ended, and
// stops the machine.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	out := os.Stdout
	for _, m := range []string{"proc", "devtmpfs"} {
		at := map[string]string{"proc": "/proc", "devtmpfs": "/dev"}[m]
		if err := syscall.Mount(m, at, m, 0, ""); err != nil {
			fmt.Fprintln(out, "guest:", err)
		}
	}
	if serial, err := os.OpenFile("/dev/ttyS0", os.O_WRONLY, 0); err == nil {
		out = serial
	}
	status := 1
	if info, _ := os.ReadFile("/proc/cpuinfo"); strings.Contains(string(info), "avx512dq") {
		status = run(out)
	} else {
		fmt.Fprintln(out, "guest: the processor has no AVX-512")
	}
	fmt.Fprintf(out, "guest: ended with %d\n", status)
	syscall.Syscall(syscall.SYS_IOCTL, out.Fd(), 0x5409, 1) // wait until all is written
	syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
}

// run runs the list of /tests/list: a folder, a program and its arguments in a line.
func run(out *os.File) (status int) {
	list, err := os.ReadFile("/tests/list")
	if err != nil {
		fmt.Fprintln(out, "guest:", err)
		return 1
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		fmt.Fprintln(out, "guest:", strings.Join(words, " "))
		c := exec.Command(filepath.Join("/tests", words[0], "x.test"), words[1:]...)
		c.Dir, c.Stdout, c.Stderr = filepath.Join("/tests", words[0]), out, out
		c.Env = []string{"HOME=/tmp", "TMPDIR=/tmp", "CALAMP_KERNEL=avx512"}
		if err := c.Run(); err != nil {
			fmt.Fprintln(out, "guest:", words[0], err)
			status = 1
		}
	}
	return status
}
