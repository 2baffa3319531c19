//go:build browser

package report_test

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	browserpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

var shots = flag.String("shots", "", "folder to put screenshots in")

// browser starts Chromium without a window.
func browser(t *testing.T) context.Context {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	require.NotEmpty(t, program, "the tests with the tag browser need Chromium")
	o := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(profile(t)),
		chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Run(ctx))
	return ctx
}

// profile is a directory for the browser, some processes of which still write to it for a moment after they were told to end.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rocketstore-browser-")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, time.Minute, 50*time.Millisecond)
	})
	return dir
}

// shot keeps a screenshot when they are asked for.
func shot(name string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if *shots == "" {
			return nil
		}
		var b []byte
		if err := chromedp.FullScreenshot(&b, 100).Do(ctx); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(*shots, name+".png"), b, 0o600)
	})
}

// dark asks for dark colours, or light ones.
func dark(on bool) chromedp.Action {
	value := "light"
	if on {
		value = "dark"
	}
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
}

const background = `getComputedStyle(document.body).backgroundColor`

// One browser for all: it takes seconds to start.
func TestPagesInABrowser(t *testing.T) {
	ctx := browser(t)
	live := httptest.NewServer(server(t, golden.Unpack(t, "rocketmq-3.1.4/rebuilt")))
	t.Cleanup(live.Close)
	bad := httptest.NewServer(server(t, evilStore(t)))
	t.Cleanup(bad.Close)
	file := filepath.Join(golden.TempDir(t), "page.html")
	require.NoError(t, os.WriteFile(file, []byte(page(t, golden.Unpack(t, "rocketmq-4.9.7/clean"))), 0o600))
	var asked []string
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			asked = append(asked, e.Request.URL)
		}
	})
	require.NoError(t, chromedp.Run(ctx, network.Enable()))

	t.Run("the file stands alone and has colours for light and dark", func(t *testing.T) {
		asked = nil
		var light, night string
		require.NoError(t, chromedp.Run(ctx,
			chromedp.EmulateViewport(1200, 900), dark(false), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#findings"),
			chromedp.Evaluate(background, &light), shot("light"), dark(true), chromedp.Evaluate(background, &night), shot("dark"), dark(false)))
		require.Equal(t, "rgb(255, 255, 255)", light)
		require.Equal(t, "rgb(22, 22, 26)", night)
		for _, u := range asked {
			require.True(t, strings.HasPrefix(u, "file://"), u)
		}
	})
	t.Run("a narrow window scrolls no page sideways", func(t *testing.T) {
		for _, target := range []string{"/", "/records", "/record?offset=0", "/queues", "/hex?file=commitlog/00000000000000000000&offset=0", "/transactions"} {
			var wide int
			require.NoError(t, chromedp.Run(ctx,
				chromedp.EmulateViewport(320, 640), chromedp.Navigate(live.URL+target), chromedp.WaitVisible("#main"),
				chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide)))
			require.LessOrEqual(t, wide, 320, target)
		}
		require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(live.URL), chromedp.WaitVisible("#main"), shot("narrow"),
			chromedp.EmulateViewport(1200, 900), shot("live"),
			chromedp.Navigate(live.URL+"/hex?file=transaction/statetable/00000000000000000000&offset=30"), chromedp.WaitVisible("#main"), shot("hex")))
	})
	t.Run("the keyboard alone leads from the report to a record", func(t *testing.T) {
		var first, title, outline string
		require.NoError(t, chromedp.Run(ctx,
			chromedp.Navigate(live.URL), chromedp.WaitVisible("#main"), chromedp.KeyEvent(kb.Tab),
			chromedp.Evaluate(`document.activeElement.textContent`, &first),
			chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
			chromedp.Evaluate(`getComputedStyle(document.activeElement).outlineStyle`, &outline)))
		t.Log(first, outline)
		_, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter))
		require.NoError(t, err)
		require.NoError(t, chromedp.Run(ctx, chromedp.Title(&title)))
		require.Equal(t, "To the content", first)
		require.Equal(t, "solid", outline)
		require.Equal(t, "Records", title)
		require.NoError(t, chromedp.Run(ctx, chromedp.Focus("tbody a")))
		_, err = chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter))
		require.NoError(t, err)
		require.NoError(t, chromedp.Run(ctx, chromedp.Title(&title)))
		require.Equal(t, "Record at 0", title)
	})
	t.Run("the style is applied under its policy, and no markup of the store is", func(t *testing.T) {
		var font string
		var scripts int
		opened := false
		chromedp.ListenTarget(ctx, func(event any) {
			if _, ok := event.(*browserpage.EventJavascriptDialogOpening); ok {
				opened = true
			}
		})
		for _, target := range []string{"/", "/records", "/record?offset=0"} {
			require.NoError(t, chromedp.Run(ctx,
				chromedp.Navigate(bad.URL+target), chromedp.WaitVisible("#main"),
				chromedp.Evaluate(`document.querySelectorAll("script,main b").length`, &scripts),
				chromedp.Evaluate(`getComputedStyle(document.body).fontFamily`, &font)))
			require.Zero(t, scripts)
			require.Contains(t, font, "system-ui")
		}
		require.False(t, opened)
	})
}
