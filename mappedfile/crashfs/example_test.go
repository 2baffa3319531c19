package crashfs_test

import (
	"fmt"
	"os"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// save replaces a file in the usual way, and may forget to sync the directory.
func save(fsys mappedfile.FS, content string, syncDir bool) error {
	f, err := fsys.OpenFile("config.tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := fsys.Rename("config.tmp", "config"); err != nil {
		return err
	}
	if !syncDir {
		return nil
	}
	return fsys.SyncDir(".")
}

// Which contents may be found after a power cut right behind save?
func Example() {
	for _, syncDir := range []bool{true, false} {
		fsys := crashfs.New(memfs.New())
		_ = save(fsys, "old", true)
		_ = save(fsys, "new", syncDir)
		found := map[string]bool{}
		for img := range fsys.Images(1000) {
			f, err := img.FS.OpenFile("config", os.O_RDONLY, 0)
			if err != nil {
				found["nothing"] = true
				continue
			}
			b := make([]byte, 3)
			_, _ = f.ReadAt(b, 0)
			found[string(b)] = true
		}
		fmt.Println("directory synced:", syncDir, found)
	}
	// Output:
	// directory synced: true map[new:true]
	// directory synced: false map[new:true old:true]
}

// A workload is cut at each of its steps, and each image is looked at.
func ExampleFS_CrashAfter() {
	whole := crashfs.New(memfs.New())
	_ = save(whole, "old", true)
	images, bad := 0, 0
	for n := range whole.Steps() + 1 {
		fsys := crashfs.New(memfs.New())
		fsys.CrashAfter(n)
		acknowledged := save(fsys, "old", true) == nil
		for seed := range uint64(10) {
			img := fsys.Image(seed)
			images++
			if _, err := img.OpenFile("config", os.O_RDONLY, 0); err != nil && acknowledged {
				bad++
			}
		}
	}
	fmt.Println(images, "images,", bad, "without what was acknowledged")
	// Output: 70 images, 0 without what was acknowledged
}
